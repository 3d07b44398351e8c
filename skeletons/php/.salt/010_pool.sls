{# A pool of PHP-FPM that runs as the project's user. It is loaded again in each deployment, so that no file of the old release stays in its cache. #}
{% set cfg = opts.ms_project %}
{% set php = cfg.data.php %}

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

{{cfg.name}}-pool:
  file.managed:
    - name: /etc/php/{{php}}/fpm/pool.d/{{cfg.name}}.conf
    - source: salt://makina-projects/{{cfg.name}}/files/pool.conf
    - template: jinja
    - mode: '0644'
    - defaults:
        name: {{cfg.name}}
        user: {{cfg.user}}
        group: {{cfg.group}}
        children: '{{cfg.data.children}}'
        environment: {{cfg.default_env}}
        data_root: {{cfg.data_root}}

{{cfg.name}}-pool-test:
  cmd.run:
    - name: php-fpm{{php}} --test
    - onchanges:
      - file: {{cfg.name}}-pool

{{cfg.name}}-release:
  test.succeed_with_changes: []

{{cfg.name}}-fpm:
  service.running:
    - name: php{{php}}-fpm
    - enable: true
    - reload: true
    - require:
      - file: {{cfg.name}}-logs
      - cmd: {{cfg.name}}-pool-test
    - watch:
      - file: {{cfg.name}}-pool
      - test: {{cfg.name}}-release
