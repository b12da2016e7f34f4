import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { demultiplex } from './demultiplex.ts'
import { takeLine } from './take-line.ts'

const frame = (kind: number, text: string): Buffer => {
  const header = Buffer.alloc(8)
  header[0] = kind
  header.writeUInt32BE(Buffer.byteLength(text), 4)
  return Buffer.concat([header, Buffer.from(text)])
}
const textOf = async (stream: AsyncIterable<Buffer>) =>
  Buffer.concat(await Array.fromAsync(stream)).toString()

test('takes frames apart wherever they are cut', async () => {
  const bytes = Buffer.concat([
    frame(1, 'one'),
    frame(2, 'problem'),
    frame(1, ''),
    frame(3, '!'),
    frame(1, ' two'),
  ])
  for (const size of [1, 3, 7, 8, 9, bytes.length]) {
    const source = new PassThrough()
    const { stdout, stderr } = demultiplex(source)
    for (let start = 0; start < bytes.length; start += size) source.write(bytes.subarray(start, start + size))
    source.end()
    expect(await Promise.all([textOf(stdout), textOf(stderr)])).toEqual(['one two', 'problem!'])
  }
})

test('both outputs end when the connection breaks, or says what nobody understands', async () => {
  const broken = new PassThrough()
  const first = demultiplex(broken)
  broken.on('error', () => {})
  broken.write(frame(1, 'kept'))
  broken.write(frame(1, 'cut off').subarray(0, 11))
  expect(await takeChunk(first.stdout)).toBe('kept')
  broken.destroy(new Error('reset'))
  expect(await Promise.all([textOf(first.stdout), textOf(first.stderr)])).toEqual(['cut', ''])
  const strange = new PassThrough()
  const second = demultiplex(strange)
  strange.write(frame(9, 'x'))
  expect(await textOf(second.stdout)).toBe('')
  expect(strange.destroyed).toBe(true)
})

test('takes no more than is read, and does not wait for who has left', async () => {
  const source = new PassThrough({ highWaterMark: 1024 })
  const { stdout, stderr } = demultiplex(source)
  const part = frame(1, 'x'.repeat(64 << 10))
  let taken = 0
  while (source.write(part) || source.readableLength < 1024) {
    taken += part.length
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(taken).toBeLessThan(4 << 20)
  stdout.destroy()
  source.write(frame(2, 'still here'))
  source.end()
  expect(await textOf(stderr)).toBe('still here')
})

test('a line is taken off, and the rest left to who reads next', async () => {
  for (const parts of [['started\nrest'], ['sta', 'rted', '\n', 'rest'], ['started\n', 'rest']]) {
    const stream = new PassThrough()
    const line = takeLine(stream)
    for (const part of parts) {
      stream.write(part)
      await new Promise((resolve) => setImmediate(resolve))
    }
    stream.end()
    expect(await line).toBe('started')
    expect(await textOf(stream)).toBe('rest')
  }
  const short = new PassThrough()
  short.end('no end')
  expect(await takeLine(short)).toBeUndefined()
})

async function takeChunk(stream: NodeJS.ReadableStream): Promise<string> {
  for (;;) {
    const chunk = stream.read() as Buffer | null
    if (chunk !== null) return chunk.toString()
    await new Promise((resolve) => stream.once('readable', resolve))
  }
}
