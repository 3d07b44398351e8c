{# A release without a failed request. Two units run the application, blue and green; nginx asks one of them. A deployment
     1. starts the other one with the new code, while nobody asks it,
     2. asks it until it answers rightly: a release that does not is never visited,
     3. has nginx ask it from now on.
   The unit of before keeps on running with the release of before, in case the new one does not answer, and is the one of step 1 next time. When the deployment
   fails after step 3, the steps of the old release run again and do the same with the old code. #}
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
{% set upstream = '/etc/nginx/conf.d/' ~ cfg.name ~ '.conf' %}
{% set serving = 'green' if salt['file.file_exists'](upstream) and 'serves is green;' in salt['file.read'](upstream) else 'blue' %}
{% set next, other = ('blue', 'green') if serving == 'green' else ('green', 'blue') %}

{{cfg.name}}-logs:
  file.directory:
    - name: /var/log/{{cfg.name}}
    - user: {{cfg.user}}
    - group: {{cfg.group}}
    - mode: '0750'

{{cfg.name}}-logrotate:
  file.managed:
    - name: /etc/logrotate.d/{{cfg.name}}
    - source: salt://makina-projects/{{cfg.name}}/files/logrotate
    - template: jinja
    - mode: '0644'
    - defaults:
        name: {{cfg.name}}
        user: {{cfg.user}}
        group: {{cfg.group}}

{% for colour in ['blue', 'green'] %}
{{cfg.name}}-unit-{{colour}}:
  file.managed:
    - name: /etc/systemd/system/{{cfg.name}}-{{colour}}.service
    - source: salt://makina-projects/{{cfg.name}}/files/unit.service
    - template: jinja
    - mode: '0644'
    - defaults:
        name: {{cfg.name}}
        colour: {{colour}}
        user: {{cfg.user}}
        group: {{cfg.group}}
        root: {{cfg.project_root}}
        data_root: {{cfg.data_root}}
        port: '{{data[colour]}}'
        workers: '{{data.workers}}'
        environment: {{cfg.default_env}}

{{cfg.name}}-boot-{{colour}}:
  service.enabled:
    - name: {{cfg.name}}-{{colour}}
    - require:
      - file: {{cfg.name}}-unit-{{colour}}
{% endfor %}

{# A command, as a service state would be restarted once more at the end of a rollback. When the deployment fails, the unit is stopped first of all: nginx
   asks the other one at once. #}
{{cfg.name}}-start:
  cmd.run:
    - name: systemctl daemon-reload && systemctl restart {{cfg.name}}-{{next}}.service
    - undo: systemctl stop {{cfg.name}}-{{next}}.service
    - require:
      - file: {{cfg.name}}-logs
      - file: {{cfg.name}}-unit-{{next}}

{{cfg.name}}-ready:
  cmd.run:
    - name: |
        end=$(($(date +%s) + {{data.ready_seconds}}))
        while [ $(date +%s) -lt $end ]; do
          answer=$(curl -sS --max-time 2 -H 'Host: {{data.domain}}' http://127.0.0.1:{{data[next]}}/health 2>&1 | tr -d ' \n') || true
          case $answer in *'"status":"ok"'*) exit 0 ;; esac
          systemctl is-active --quiet {{cfg.name}}-{{next}}.service || break
          sleep .2
        done
        echo "{{next}} does not answer rightly: $answer" >&2
        exit 1
    - undo: 'true'
    - require:
      - cmd: {{cfg.name}}-start

{{cfg.name}}-upstream:
  file.managed:
    - name: {{upstream}}
    - source: salt://makina-projects/{{cfg.name}}/files/upstream.conf
    - template: jinja
    - mode: '0644'
    - defaults:
        name: {{cfg.name}}
        colour: {{next}}
        port: '{{data[next]}}'
        other_port: '{{data[other]}}'
    - require:
      - cmd: {{cfg.name}}-ready
