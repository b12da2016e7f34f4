import { createHash } from 'node:crypto'
import type { BlobId } from '@tutti/core'
import type { CapturedChange } from '@tutti/workspace'
import { expect, test } from 'vitest'
import { receiveChanges } from '../inside/receive-changes.ts'
import type { CallMessage } from '../link/call.ts'
import { smallBytes } from '../wire-change.ts'
import { sendChanges } from './send-changes.ts'

const contents = new Map<BlobId, Uint8Array>()
const change = (path: string, content: Uint8Array): CapturedChange => {
  const hash = `sha256_${createHash('sha256').update(content).digest('hex')}` as const
  contents.set(hash, content)
  return {
    action: 'created',
    state: { path: Buffer.from(path), fileType: 'file', mode: '100644', size: content.length, hash },
  }
}
const gone = (path: string): CapturedChange => ({ action: 'deleted', path: Buffer.from(path) })
const sizes = [
  0,
  1,
  smallBytes,
  smallBytes + 1,
  3,
  smallBytes,
  smallBytes,
  smallBytes,
  smallBytes,
  5 << 20,
  2,
]
const changes = [
  gone('old'),
  ...sizes.map((size, at) => change(`sized-${at}`, Buffer.alloc(size, at + 1))),
  ...Array.from({ length: 500 }, (_, at) => change(`many-${at}`, Buffer.from(`content ${at}`))),
]
async function* contentOf(hash: BlobId) {
  yield contents.get(hash)!
}
const contentsOf = async (hashes: readonly BlobId[]) => hashes.map((hash) => contents.get(hash)!)

async function* from(messages: readonly CallMessage[]) {
  yield* messages
}

async function* received(messages: readonly CallMessage[]) {
  yield* receiveChanges(from(messages))
}

async function send(how: Parameters<typeof sendChanges>[2]): Promise<CallMessage[]> {
  const messages: CallMessage[] = []
  const take = async (head: unknown, bytes: Uint8Array = new Uint8Array()) => {
    messages.push({ head: structuredClone(head), bytes })
  }
  await sendChanges({ send: take }, changes, how)
  return messages
}

test.each([
  ['one by one', { contentOf }],
  ['many at once', { contentOf, contentsOf }],
])('changes with contents of all sizes arrive in their order, read %s', async (_, how) => {
  const messages = await send(how)
  expect(messages.length).toBeLessThan(120)
  const arrived: [CapturedChange, Buffer][] = []
  for await (const { change, content } of received(messages)) {
    const parts = content instanceof Uint8Array ? [content] : await Array.fromAsync(content)
    arrived.push([change, Buffer.concat(parts)])
  }
  expect(arrived.map(([change]) => change)).toEqual(changes)
  for (const [change, content] of arrived)
    if (change.action !== 'deleted')
      expect('hash' in change.state && content.equals(contents.get(change.state.hash)!)).toBe(true)
})

test('a large content that nobody reads holds up no change behind it', async () => {
  const paths: string[] = []
  for await (const { change } of received(await send({ contentOf })))
    paths.push(String(change.action === 'deleted' ? change.path : change.state.path))
  expect(paths.length).toBe(changes.length)
  expect(paths.at(-1)).toBe('many-499')
})

test('a content of another length is told of, and changes that are cut off are not whole', async () => {
  const short = async (hashes: readonly BlobId[]) => hashes.map(() => Buffer.from('x'))
  await expect(send({ contentOf, contentsOf: short })).rejects.toMatchObject({ code: 'data_loss' })
  const cut = received((await send({ contentOf })).slice(0, -1))
  await expect(Array.fromAsync(cut, ({ change }) => change.action)).rejects.toMatchObject({
    code: 'cancelled',
  })
})
