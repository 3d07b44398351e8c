{# Gems that are not Debian's lie in the project, untracked: a rollback restores them with the rest. GEM_HOME is where bundler installs them; those of
   Debian are found, too. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-gems:
  cmd.run:
    - name: bundle install --quiet
    - cwd: {{cfg.project_root}}
    - runas: {{cfg.user}}
    - env:
      - GEM_HOME: {{cfg.project_root}}/vendor/gems
      - HOME: {{cfg.project_root}}
      - BUNDLE_IGNORE_CONFIG: '1'
    - unless: bundle check
