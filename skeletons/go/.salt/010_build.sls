{# The program is built on the machine, as the project's user, and lies in the project, untracked: a rollback restores it with the rest. What does not
   build, and what fails its own tests, fails the deployment before anything was restarted. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-cache:
  file.directory:
    - name: /var/cache/{{cfg.name}}
    - user: {{cfg.user}}
    - group: {{cfg.group}}
    - mode: '0750'

{{cfg.name}}-build:
  cmd.run:
    - name: go test ./... && go build -trimpath -buildvcs=false -o build/app.new . && mv build/app.new build/app
    - cwd: {{cfg.project_root}}
    - runas: {{cfg.user}}
    - env:
      - CGO_ENABLED: '0'
      - GOCACHE: /var/cache/{{cfg.name}}/build
      - GOMODCACHE: /var/cache/{{cfg.name}}/modules
      - GOFLAGS: -mod=readonly
    - require:
      - file: {{cfg.name}}-cache
