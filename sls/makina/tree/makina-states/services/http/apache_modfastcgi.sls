{#- Apache talks to PHP-FPM and to other FastCGI servers by mod_proxy_fcgi, which Debian has in apache2. #}
include:
  - makina-states.services.http.apache

makina-apache-fastcgi:
  cmd.run:
    - name: a2enmod -q proxy proxy_fcgi setenvif actions
    - unless: a2query -q -m proxy && a2query -q -m proxy_fcgi && a2query -q -m setenvif && a2query -q -m actions
    - watch:
      - mc_proxy: makina-apache-pre-conf
    - watch_in:
      - mc_proxy: makina-apache-post-conf
