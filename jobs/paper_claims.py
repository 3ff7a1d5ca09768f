"""stub"""
def reproduction(found):
    return "todo"
