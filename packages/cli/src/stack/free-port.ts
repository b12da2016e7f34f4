import { createServer } from 'node:net'
import { TuttiError } from '@tutti/core'

/** The wished port when it is free, else any free one. 0 means any. */
export async function freePort(wished: number, host: string): Promise<number> {
  return (await tryPort(wished, host)) ?? (await tryPort(0, host))!
}

/** @throws TuttiError `failed_precondition` when the port is taken: it was asked for by number. `instead`: what to do then. */
export async function requirePort(port: number, host: string, instead: string): Promise<number> {
  const got = await tryPort(port, host)
  if (got !== undefined) return got
  throw new TuttiError('failed_precondition', `Port ${port} is taken. ${instead}`, { port })
}

function tryPort(port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined)
      else reject(error)
    })
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address()
      const found = typeof address === 'object' && address !== null ? address.port : undefined
      server.close(() => resolve(found))
    })
  })
}
