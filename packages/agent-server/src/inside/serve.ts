import { Socket } from 'node:net'
import { createCallee } from '../link/callee.ts'
import type { WireHeader } from '../link/caller.ts'
import { createLink } from '../link/link.ts'
import { createHandlers } from './handlers.ts'

/** Serves the host on standard input and output until it is gone. */
export function serve(): void {
  // Standard output belongs to the protocol alone, whatever a dependency may want to print.
  console.log = console.error
  console.info = console.error

  // Sockets, not process.stdout: that one writes to pipes synchronously, and a slow reader would stop everything else.
  const input = new Socket({ fd: 0, readable: true, writable: false })
  const output = new Socket({ fd: 1, readable: false, writable: true })
  const { handlers, end: endAll } = createHandlers()
  const link = createLink({ onMessage: (header, bytes) => onMessage(header as WireHeader, bytes) })
  const onMessage = createCallee(link, handlers)
  link.attach(
    (bytes) =>
      new Promise((resolve, reject) => output.write(bytes, (error) => (error ? reject(error) : resolve()))),
  )

  let ending = false
  async function end(): Promise<void> {
    if (ending) return
    ending = true
    link.close(new Error('the host is gone'))
    await endAll()
    process.exit(0)
  }

  input.on('data', (chunk: Buffer) => {
    try {
      link.receive(chunk)
    } catch (error) {
      console.error(error)
      void end()
    }
  })
  // The host's end is the only way in and out; without it nothing here has a purpose.
  input.on('end', () => void end())
  input.on('error', () => void end())
  output.on('error', () => void end())
  process.on('SIGTERM', () => void end())
  // A call whose other end has gone away fails in many places at once; each of them reports to nobody.
  process.on('unhandledRejection', (error) => console.error(error))
}
