{#- RVM below /usr/local/rvm, by its published installer, whose signature GnuPG checks. #}
{%- import "makina-states/localsettings/rvm/macros.jinja" as macros with context %}
{%- set install_ruby = macros.install_ruby %}
{%- set rvm = macros.rvm %}
{%- set rvm_env = macros.rvm_env %}
{%- set locs = salt['mc_locations.settings']() %}
include:
  - makina-states.localsettings.rvm.hooks

rvm-packages:
  pkg.installed:
    - pkgs: [curl, gnupg, ca-certificates, bash, build-essential, libssl-dev, libyaml-dev, libreadline-dev, zlib1g-dev, libgmp-dev, libffi-dev]
    - watch:
      - mc_proxy: rvm-install-pre
    - watch_in:
      - mc_proxy: rvm-install-post

rvm-installed:
  cmd.run:
    - name: |
        set -e
        curl -fsSL https://rvm.io/mpapis.asc | gpg --batch --import -
        curl -fsSL https://rvm.io/pkuczynski.asc | gpg --batch --import -
        curl -fsSL -o "$TMPDIR/rvm-installer" https://get.rvm.io
        bash "$TMPDIR/rvm-installer" stable
        rm -f "$TMPDIR/rvm-installer"
    - env:
      - TMPDIR: /root
    - unless: test -x {{ locs.rvm }}
    - watch:
      - mc_proxy: rvm-install-post
    - watch_in:
      - mc_proxy: rvm-setup-pre
