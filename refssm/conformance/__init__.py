"""The judge: is an implementation right, how accurate is it, and if it is wrong, where?"""
