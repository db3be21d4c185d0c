"""The report of every load test: `table.md`, `plot.png` and `result.json.gz` in one folder.

content    what is shown: tables and charts, as values
markdown   tables as text
plots      charts as one picture
folder     the three files, written and read
commands   what a subcommand is; `report`, which makes the table and the picture again from the result
"""
