{# A line in the crontab of the project's user. The identifier makes a later deployment change this line and not add another. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-nightly:
  cron.present:
    - name: DATA_ROOT={{cfg.data_root}} {{cfg.project_root}}/nightly.sh >> /var/log/{{cfg.name}}/nightly.log 2>&1
    - identifier: {{cfg.name}}-nightly
    - user: {{cfg.user}}
    - hour: '{{cfg.data.nightly_hour}}'
    - minute: '{{cfg.data.nightly_minute}}'
