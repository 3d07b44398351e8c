{% set cfg = opts.ms_project %}

{{cfg.name}}-hello:
  cmd.run:
    - name: echo "hello from a task of {{cfg.name}}"
