"""A backend that gives its users tokens, and serves their pages (docs/security.md, docs/browser.md).

pip install httpx starlette uvicorn
GATEWAY_API_KEY=… uvicorn --app-dir examples --port 8080 backend:app
"""

import os

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

GATEWAY = os.environ.get("GATEWAY_URL", "http://127.0.0.1:8000")
MEETINGS = {"ana": {"standup"}}  # who may be where


async def token(request: Request) -> JSONResponse:
    user, meeting = "ana", request.path_params["meeting"]  # the user who is logged in to your application
    if meeting not in MEETINGS[user]:
        return JSONResponse(None, 403)
    order = {"sub": user, "meeting": meeting, "roles": ["speak", "read"], "name": "Ana"}
    async with httpx.AsyncClient() as client:
        answer = await client.post(
            f"{GATEWAY}/v1/tokens",
            json=order,
            headers={"Authorization": f"Bearer {os.environ['GATEWAY_API_KEY']}"},
        )
    answer.raise_for_status()
    return JSONResponse({"token": answer.json()["token"]})


app = Starlette(
    routes=[
        Route("/meeting-token/{meeting}", token, methods=["POST"]),
        Mount("/", StaticFiles(directory="page", html=True, check_dir=False)),  # your pages
    ]
)
