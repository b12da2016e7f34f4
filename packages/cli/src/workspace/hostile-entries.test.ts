import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hostilePaths } from '@tutti/testkit'
import { pathKey } from '@tutti/workspace'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createLocalTree } from '../sync/local-tree.ts'
import { createLocalWriter } from '../sync/local-writer.ts'
import { testParts } from './test-parts.ts'
import { writeWorkspace } from './write-workspace.ts'

let outside: string
beforeEach(() => {
  outside = mkdtempSync(join(tmpdir(), 'tutti-hostile-'))
})
afterEach(() => rmSync(outside, { recursive: true, force: true }))

test.each(hostilePaths)(
  'SEC-01 nothing is written into the folder of a user for the path %j',
  async (path) => {
    const folder = join(outside, 'folder')
    const parts = testParts(['fine', '100644', '1'], [path, '100644', 'pwned'])
    await expect(writeWorkspace(parts, folder)).rejects.toMatchObject({ code: 'data_loss' })
    expect(readdirSync(outside)).toEqual([])

    mkdirSync(folder)
    const writer = createLocalWriter(createLocalTree(folder), join(outside, 'temporaries'))
    expect(writer.problem(pathKey(Buffer.from(path)))).toBeTypeOf('string')
  },
)

test('SEC-02 nothing is written below a link into the folder of a user', async () => {
  const parts = testParts(['out', '120000', outside], ['out/pwn', '100644', 'pwned'])
  await expect(writeWorkspace(parts, join(outside, 'folder'))).rejects.toMatchObject({ code: 'data_loss' })
  expect(readdirSync(outside)).toEqual([])
})
