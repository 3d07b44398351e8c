{# Packages of Debian; bundler sees their gems, so that a first deployment downloads nothing from rubygems.org. Gems with code in C need ruby-dev and
   build-essential. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-packages:
  pkg.installed:
    - pkgs:
      - nginx-light
      - ruby
      - bundler
      - puma
      - ruby-sinatra
