"""The pages. They ask the service api."""
import json
import os
import urllib.request

from flask import Flask

app = Flask(__name__)
API = "http://127.0.0.1:" + os.environ.get("API_PORT", "8001")


def ask(path):
    with urllib.request.urlopen(API + path, timeout=5) as answer:
        return json.load(answer)


@app.get("/")
def home():
    return f"It works: {ask('/api/greeting')['greeting']}\n"


@app.get("/health")
def health():
    return {"status": ask("/api/health")["status"], "service": "web"}
