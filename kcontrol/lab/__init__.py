"""The modules behind `Lab`, the class with which a notebook runs a cluster and makes its tables, pictures and exercises."""
