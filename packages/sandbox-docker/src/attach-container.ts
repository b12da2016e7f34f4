import { once } from 'node:events'
import { request } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Opens the standard streams of a container that was not started yet, so that nothing of its output is lost. What is written goes to its
 * input, `end()` ends that; both outputs come multiplexed ({@link demultiplex}).
 *
 * Not by dockerode: it sends its options as the body of this call too, which Podman takes for the first bytes of input.
 *
 * @throws an Error with `statusCode` when the engine refuses.
 */
export async function attachContainer(socketPath: string, id: string, signal: AbortSignal): Promise<Duplex> {
  const call = request({
    socketPath,
    method: 'POST',
    path: `/containers/${id}/attach?stream=1&stdin=1&stdout=1&stderr=1`,
    headers: { Connection: 'Upgrade', Upgrade: 'tcp' },
    agent: false,
  })
  const abort = () => call.destroy(new DOMException('The call was cancelled.', 'AbortError'))
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await new Promise((resolve, reject) => {
      call.once('upgrade', (_response, socket, head) => {
        if (head.length > 0) socket.unshift(head)
        resolve(socket)
      })
      call.once('response', (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => (text += chunk))
        once(response, 'end').then(
          () => reject(Object.assign(new Error(messageIn(text)), { statusCode: response.statusCode })),
          reject,
        )
      })
      call.once('error', reject)
      if (signal.aborted) abort()
      call.end()
    })
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text
  } catch {
    return text
  }
}
