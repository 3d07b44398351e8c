{# What a state does is undone when the deployment fails; what a command does is not. Use states for files outside of the project. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-settings:
  file.managed:
    - name: {{cfg.data_root}}/settings
    - mode: '0640'
    - makedirs: true
    - contents: |
        greeting={{cfg.data.greeting}}
        environment={{cfg.default_env}}
