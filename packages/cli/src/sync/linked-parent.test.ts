import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createLocalTree } from './local-tree.ts'
import { changedMeanwhile, createLocalWriter } from './local-writer.ts'

let root: string
let folder: string
let outside: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tutti-linked-'))
  ;[folder, outside] = [join(root, 'work'), join(root, 'moved')]
  for (const made of [join(folder, '.tutti'), join(folder, 'a/empty'), join(root, 'tmp')])
    mkdirSync(made, { recursive: true })
  writeFileSync(join(folder, 'a/x'), 'mine')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** The user moves a folder away, and puts a link to it in its place. */
function moveOut(): void {
  renameSync(join(folder, 'a'), outside)
  symlinkSync(outside, join(folder, 'a'))
}

test('what is behind a linked folder is not in the folder', async () => {
  const tree = createLocalTree(folder)
  await tree.look('a/x')
  moveOut()
  for (const key of ['a/x', 'a/empty', 'a/none'])
    expect(await tree.look(key)).toEqual({ state: undefined, stat: undefined })
  expect((await tree.look('a')).state?.mode).toBe('120000')
})

test('what was seen in a folder is not removed through the link that has taken its place', async () => {
  const tree = createLocalTree(folder)
  const writer = createLocalWriter(tree, join(root, 'tmp'))
  const [file, empty] = [await tree.look('a/x'), await tree.look('a/empty')]
  moveOut()
  expect(await writer.remove('a/x', file)).toBe(changedMeanwhile)
  expect(await writer.remove('a/empty', empty)).toBe(changedMeanwhile)
  expect([existsSync(join(outside, 'x')), existsSync(join(outside, 'empty'))]).toEqual([true, true])
})
