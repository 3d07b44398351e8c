{% set cfg = opts.ms_project %}
{% set data = cfg.data %}

{{cfg.name}}-page-is-whole:
  cmd.run:
    - name: grep -q '</html>' index.html && test -s style.css && echo "the page is whole"
    - cwd: {{data.docroot}}
