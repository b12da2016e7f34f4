import { randomBytes } from 'node:crypto'
import type { Diff, Mirrors } from '@tutti/git'
import type { Catalog } from '@tutti/store'
import { expect, test } from 'vitest'
import { streamDiff } from './stream-diff.ts'

const never = new AbortController().signal
const scope = { owner: 'local', repository: 'https://example.org/a.git', baseCommit: 'a', commit: 'b' }

const stream = (diff: Diff) => {
  const mirror = { countChanges: () => Promise.resolve(1), diff: () => Promise.resolve(diff) }
  const mirrors = { restore: () => Promise.resolve(mirror) } as unknown as Mirrors
  return streamDiff({ catalog: {} as Catalog, mirrors }, scope, never)
}

test('a patch comes byte for byte, in pieces', async () => {
  const patch = randomBytes(9 << 20)
  const pieces = await Array.fromAsync(stream({ patch, cut: false }))
  expect(pieces[0]).toEqual({ baseCommit: 'a', commit: 'b', filesChanged: 1 })
  expect(pieces.length).toBeGreaterThan(2)
  expect(Buffer.concat(pieces.map((piece) => piece.patch ?? new Uint8Array())).equals(patch)).toBe(true)
})

test('a patch above the limit ends in an error behind its start', async () => {
  const pieces = stream({ patch: Buffer.from('start\n'), cut: true })
  expect((await pieces.next()).value).toMatchObject({ filesChanged: 1 })
  expect((await pieces.next()).value).toEqual({ patch: Buffer.from('start\n') })
  await expect(pieces.next()).rejects.toMatchObject({ code: 'resource_exhausted', detail: { commit: 'b' } })
})
