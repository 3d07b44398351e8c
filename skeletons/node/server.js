// The application: HTTP on 127.0.0.1, behind nginx.
const http = require('node:http');

const server = http.createServer((request, response) => {
  switch (request.url) {
    case '/':
      response.setHeader('Content-Type', 'text/plain');
      response.end('It works: this page was deployed by a git push.\n');
      break;
    case '/health':
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ status: 'ok' }));
      break;
    default:
      response.statusCode = 404;
      response.end('not found\n');
  }
});

server.listen(Number(process.env.PORT), '127.0.0.1');
process.on('SIGTERM', () => server.close(() => process.exit(0)));
