"""The application: WSGI, served by gunicorn."""
from flask import Flask

app = Flask(__name__)


@app.get("/")
def home():
    return "It works: this page was deployed by a git push.\n"


@app.get("/health")
def health():
    return {"status": "ok"}
