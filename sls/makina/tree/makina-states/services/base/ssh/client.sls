{#- OpenSSH's client of the distribution. #}
openssh-pkgs:
  pkg.installed:
    - pkgs: [openssh-client]
