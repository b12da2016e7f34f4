import type { Readable } from 'node:stream'

const newline = 10

/**
 * Takes the first line off a stream, and leaves what comes after it to the next reader.
 *
 * @returns the line without its end; undefined when the stream ends before that.
 */
export async function takeLine(stream: Readable): Promise<string | undefined> {
  let line = Buffer.alloc(0)
  for (;;) {
    const chunk = stream.read() as Buffer | null
    if (chunk === null) {
      if (stream.readableEnded || stream.destroyed) return undefined
      await somethingNew(stream)
      continue
    }
    line = Buffer.concat([line, chunk])
    const end = line.indexOf(newline)
    if (end < 0) continue
    if (end + 1 < line.length) stream.unshift(line.subarray(end + 1))
    return line.subarray(0, end).toString()
  }
}

function somethingNew(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    const names = ['readable', 'end', 'close'] as const
    const done = () => {
      for (const name of names) stream.off(name, done)
      resolve()
    }
    for (const name of names) stream.on(name, done)
  })
}
