"""What the pages, and other programs, ask."""
from flask import Flask

app = Flask(__name__)


@app.get("/api/greeting")
def greeting():
    return {"greeting": "this page was deployed by a git push."}


@app.get("/api/health")
def health():
    return {"status": "ok", "service": "api"}
