# Serves a tree over OpenAI's chat completions. Build: docker build -t kace .
# Run: docker run -p 8123:8123 -e KACE_SERVE_KEY=... -e OPENAI_API_KEY=... kace --model openai/NAME
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir "/src[local]" && rm -rf /src && useradd --create-home kace
USER kace
WORKDIR /home/kace
EXPOSE 8123
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8123/healthz')"]
ENTRYPOINT ["kace", "serve", "--host", "0.0.0.0", "--tree", "starter"]
