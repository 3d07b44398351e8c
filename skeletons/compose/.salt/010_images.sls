{# The images are built before anything is stopped: what does not build fails the deployment, and visitors see nothing of it. In a rollback the files are those
   of before, and their image is in the cache. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-images:
  cmd.run:
    - name: podman-compose --project-name {{cfg.name}} build
    - cwd: {{cfg.project_root}}
    - env:
      - PROJECT: {{cfg.name}}
      - PORT: '{{cfg.data.port}}'
      - DATA_ROOT: {{cfg.data_root}}
    - undo: 'true'
