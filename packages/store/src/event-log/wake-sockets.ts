import { randomBytes } from 'node:crypto'
import { mkdir, readdir, stat, unlink } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { LogId } from '@tutti/core'
import { isRunning } from '@tutti/processes'

/** Tells the other processes on the same data folder which logs have grown. Only a hint: who misses one finds out by polling. */
export interface WakeSockets {
  announce(log: LogId): void
  close(): Promise<void>
}

/** The smallest limit of a socket's path (macOS: 104 bytes with the final zero). */
const maxSocketPath = 103
/** A peer that does not read is left to its polling beyond this many bytes. */
const maxUnsent = 64 << 10
/** A refusing socket is left alone for this long, in milliseconds: its process may be about to listen. */
const graceMs = 10_000

/**
 * Listens on `{wakeDir}/wake/{pid}-{random}.sock` and connects to the sockets of the others (docs/decisions/0010). Where the path
 * is too long for a socket, this process is woken by polling only.
 */
export async function openWakeSockets(wakeDir: string, onWake: (log: LogId) => void): Promise<WakeSockets> {
  const folder = join(wakeDir, 'wake')
  const ownName = `${process.pid}-${randomBytes(4).toString('hex')}.sock`
  const peers = new Map<string, Socket>()
  const incoming = new Set<Socket>()
  let unsent = new Set<LogId>()
  let sending: Promise<void> | undefined
  let closed = false

  await mkdir(folder, { recursive: true, mode: 0o700 })
  const server = createServer((socket) => {
    incoming.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => incoming.delete(socket))
    createInterface({ input: socket }).on('line', (line) => onWake(line as LogId))
    socket.unref()
  })
  server.unref()
  if (Buffer.byteLength(join(folder, ownName)) <= maxSocketPath) await listen(server, join(folder, ownName))

  function peer(name: string): Socket {
    const known = peers.get(name)
    if (known) return known
    const path = join(folder, name)
    const socket = connect(path)
    socket.unref()
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') void removeStale(path, name)
    })
    socket.on('close', () => peers.delete(name))
    peers.set(name, socket)
    return socket
  }

  async function names(): Promise<string[]> {
    const found = await readdir(folder).catch(() => [])
    return found.filter((name) => name.endsWith('.sock') && name !== ownName)
  }

  async function sendAll(): Promise<void> {
    while (unsent.size > 0) {
      const others = await names()
      const text = [...unsent].map((log) => `${log}\n`).join('')
      unsent = new Set()
      if (closed) return
      for (const socket of others.map(peer)) if (socket.writableLength < maxUnsent) socket.write(text)
    }
  }

  // Finds the sockets that dead processes left.
  for (const name of await names()) peer(name)

  return {
    announce(log) {
      unsent.add(log)
      sending ??= sendAll().finally(() => (sending = undefined))
    },
    async close() {
      closed = true
      await sending
      for (const socket of peers.values()) socket.destroySoon()
      for (const socket of incoming) socket.destroy()
      if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

function listen(server: ReturnType<typeof createServer>, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

async function removeStale(path: string, name: string): Promise<void> {
  const made = await stat(path).catch(() => undefined)
  if (!made || (isRunning(Number.parseInt(name, 10)) && Date.now() - made.mtimeMs < graceMs)) return
  await unlink(path).catch(() => {})
}
