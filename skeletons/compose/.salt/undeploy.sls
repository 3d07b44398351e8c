{# Runs first when the project is undeployed or destroyed: what podman keeps besides files, which come back by themselves. Packages stay: other
   projects may use them. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-service:
  service.dead:
    - name: {{cfg.name}}

{{cfg.name}}-images:
  cmd.run:
    - name: |
        podman network rm --force {{cfg.name}}_default
        podman images --quiet --filter reference=localhost/{{cfg.name}}-web | xargs -r podman rmi --force
        podman image prune --force >/dev/null
    - require:
      - service: {{cfg.name}}-service
