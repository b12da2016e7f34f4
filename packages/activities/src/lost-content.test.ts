import { createHash } from 'node:crypto'
import { createMemoryBlobStore, type BlobStore } from '@tutti/blob-store'
import { TuttiError, type BlobId } from '@tutti/core'
import type { CapturedChange } from '@tutti/workspace'
import { expect, test } from 'vitest'
import { lostContent } from './lost-content.ts'

const never = new AbortController().signal
const hashOf = (text: string): BlobId => `sha256_${createHash('sha256').update(text).digest('hex')}`
const written = (path: string): CapturedChange => ({
  action: 'created',
  state: { path: Buffer.from(path), fileType: 'file', mode: '100644', size: path.length, hash: hashOf(path) },
})
const notThere = new TuttiError('not_found', 'There is no blob.')

async function storeWith(...texts: readonly string[]): Promise<BlobStore> {
  const blobs = createMemoryBlobStore()
  for (const text of texts) await blobs.put(Buffer.from(text), never)
  return blobs
}

test('names what the store has not, with its hash', async () => {
  const folder: CapturedChange = {
    action: 'created',
    state: { path: Buffer.from('folder'), fileType: 'dir', mode: '040000' },
  }
  const changes = [
    written('there'),
    written('gone'),
    folder,
    { action: 'deleted', path: Buffer.from('old') } as const,
  ]
  const error = await lostContent(notThere, { changes, packs: [] }, await storeWith('there'), never)
  expect(error).toMatchObject({ code: 'data_loss', detail: { files: 1, id: hashOf('gone') } })
  expect(error!.message).toContain(`: gone (${hashOf('gone')}). Put`)
})

test.each(['id', 'hash'])(
  'names what is there and damaged, by the %s that was found wrong, unless it was damaged on its way',
  async (field) => {
    const damaged = new TuttiError('data_loss', 'Damaged.', { [field]: hashOf('a') })
    const content = { changes: [written('a'), written('b')], packs: [] }
    const blobs = await storeWith('a', 'b')
    const broken: BlobStore = {
      ...blobs,
      async *stream(id, signal) {
        yield* blobs.stream(id, signal)
        throw damaged
      },
    }
    const error = await lostContent(damaged, content, broken, never)
    expect(error).toMatchObject({ code: 'data_loss' })
    expect(error!.message).toContain(`: a (${hashOf('a')}). Put`)
    expect(await lostContent(damaged, content, blobs, never)).toMatchObject({ code: 'unavailable' })
  },
)

test('of very many it shows some and counts the rest', async () => {
  const changes = Array.from({ length: 25 }, (_, index) => written(`f${index}`))
  const error = await lostContent(notThere, { changes, packs: [] }, await storeWith(), never)
  expect(error!.message).toContain(', and 5 more.')
})

test('what failed for something else stays what it is, also when the store does not answer', async () => {
  const blobs = await storeWith('a')
  expect(await lostContent(notThere, { changes: [written('a')], packs: [] }, blobs, never)).toBeUndefined()
  const busy = new TuttiError('unavailable', 'Busy.')
  expect(await lostContent(busy, { changes: [written('b')], packs: [] }, blobs, never)).toBeUndefined()
  const silent = { ...blobs, has: () => Promise.reject(busy) }
  expect(await lostContent(notThere, { changes: [written('b')], packs: [] }, silent, never)).toBeUndefined()
})

test('a pack of the agent’s commits is named too', async () => {
  const packs = [hashOf('there'), hashOf('gone')]
  const error = await lostContent(notThere, { changes: [], packs }, await storeWith('there'), never)
  expect(error!.message).toContain(`: a pack of the agent’s commits (${hashOf('gone')}). Put`)
})
