"""A report about a folder of tables, as a page that needs no network and as lines in the terminal; Spark is not started.

`tables.py` reads the Parquet files, `sections.py` counts, `page.py` writes the page.
"""
