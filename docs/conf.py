"""conf.py - how Sphinx builds the pages that make_site.py has laid out."""
project = 'PCCL/MPI'
author = 'the authors of PCCL/MPI'
extensions = ['myst_parser']
myst_heading_anchors = 4
smartquotes = False  # options begin with two dashes
html_theme = 'alabaster'
html_theme_options = {
    'description': 'Collectives that survive the loss of processes',
    'page_width': '70em',
    'font_family': 'sans-serif',
    'fixed_sidebar': False,
    'sidebar_width': '16em',
}
html_sidebars = {'**': ['about.html', 'navigation.html', 'searchbox.html']}
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
