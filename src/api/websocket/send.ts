/** Sending over a WebSocket. */
import type { WebSocket } from 'ws';

/**
 * Null: the text has been given to the system, or the socket is closed. Else the promise resolves when that is so: whoever waits for it sends
 * no faster than is read.
 */
export function sent(socket: WebSocket, text: string): Promise<void> | null {
  if (socket.readyState !== socket.OPEN) return null;
  let written: (error?: Error) => void = () => {};
  socket.send(text, (error) => written(error));
  if (socket.bufferedAmount === 0) return null;
  return new Promise((resolve, reject) => {
    written = (error) => (error ? reject(error) : resolve());
  });
}
