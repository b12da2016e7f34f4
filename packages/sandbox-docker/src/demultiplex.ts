import { once } from 'node:events'
import { PassThrough, type Duplex, type Readable, type Writable } from 'node:stream'

/** One frame: kind of stream, three zero bytes, length of what follows as 32 bits, big-endian. */
const headerBytes = 8
const kinds = { stdout: 1, stderr: 2, engine: 3 } as const

/**
 * Both outputs share one connection, so that one which nobody reads holds up the other in the end. Until this much of it waits, it
 * does not.
 */
const bufferBytes = 1 << 20

export interface Outputs {
  readonly stdout: Readable
  readonly stderr: Readable
}

/**
 * Takes the outputs of a container apart, no faster than they are read. Both end when the connection does, in whatever way: the exit of
 * the container says why.
 */
export function demultiplex(source: Duplex): Outputs {
  const stdout = new PassThrough({ highWaterMark: bufferBytes })
  const stderr = new PassThrough({ highWaterMark: bufferBytes })
  void forward(source, stdout, stderr)
    .catch(() => source.destroy())
    .finally(() => {
      stdout.end()
      stderr.end()
    })
  return { stdout, stderr }
}

async function forward(source: Duplex, stdout: Writable, stderr: Writable): Promise<void> {
  const header = Buffer.alloc(headerBytes)
  let headerFilled = 0
  let left = 0
  let target = stdout
  // Not the iterator of a stream: at the end it would destroy the connection, whose other direction may still be in use.
  for await (const chunk of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    let bytes = chunk
    while (bytes.length > 0) {
      if (left === 0) {
        const taken = bytes.copy(header, headerFilled)
        headerFilled += taken
        bytes = bytes.subarray(taken)
        if (headerFilled < headerBytes) continue
        headerFilled = 0
        target = targetOf(header[0], stdout, stderr)
        left = header.readUInt32BE(4)
        continue
      }
      const payload = bytes.subarray(0, left)
      bytes = bytes.subarray(payload.length)
      left -= payload.length
      await hand(target, payload)
    }
  }
}

function targetOf(kind: number | undefined, stdout: Writable, stderr: Writable): Writable {
  if (kind === kinds.stdout) return stdout
  // What the engine itself has to say belongs beside the program's own complaints.
  if (kind === kinds.stderr || kind === kinds.engine) return stderr
  throw new Error(`a frame of an unknown kind, ${kind}`)
}

/** Resolves when there is room for more, at once where nobody listens any more. */
async function hand(target: Writable, bytes: Uint8Array): Promise<void> {
  if (target.destroyed || target.write(bytes)) return
  const controller = new AbortController()
  const { signal } = controller
  await Promise.race([once(target, 'drain', { signal }), once(target, 'close', { signal })]).catch(() => {})
  controller.abort()
}
