/** Sending over a WebSocket. */
import type { WebSocket } from 'ws';

/** Resolves when the text has been given to the system, or the socket is closed. So whoever waits for it sends no faster than is read. */
export const sent = (socket: WebSocket, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    if (socket.readyState !== socket.OPEN) resolve();
    else socket.send(text, (error) => (error ? reject(error) : resolve()));
  });
