"""The settings. What differs between installations comes from the environment (.salt/files/environment)."""
import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
# On a developer's machine: a folder data/ beside the code.
DATA_ROOT = Path(os.environ.get("DATA_ROOT", BASE_DIR / "data"))
DEBUG = os.environ.get("ENVIRONMENT", "dev") == "dev"
ALLOWED_HOSTS = os.environ.get("DOMAINS", "localhost,127.0.0.1").split(",")
SECRET_KEY = os.environ.get("SECRET_KEY", "for development only")
CSRF_TRUSTED_ORIGINS = []

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "notes",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "site_settings.urls"
WSGI_APPLICATION = "site_settings.wsgi.application"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA_ROOT / "db.sqlite3", "OPTIONS": {"timeout": 20}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

# Collected by each deployment, untracked: a rollback restores them with the code.
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "static_root"
# What visitors upload stays in data/, which no rollback touches.
MEDIA_URL = "/media/"
MEDIA_ROOT = DATA_ROOT / "media"
