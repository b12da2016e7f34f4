import { readdir } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { importCommit, type ImportRequest } from './fast-import.ts'
import type { Mirror } from './port.ts'
import { createGitRunner, type GitRunner } from './run-git.ts'
import { createFixture, gone, never, put, userGit, type Fixture } from './test-fixture.ts'

let fixture: Fixture
let mirror: Mirror
let git: GitRunner
let base: string
beforeEach(async () => {
  fixture = await createFixture()
  base = fixture.commitAll()
  mirror = await fixture.mirrors.open(fixture.source, never)
  git = createGitRunner({ gitPath: 'git', home: fixture.folder })
})
afterEach(() => fixture.remove())

describe('SEC-11 a script for fast-import holds no command but our own', () => {
  const refs = () => userGit(mirror.path, 'for-each-ref')
  const ref = 'refs/tutti/agents/bc-1/checkpoint'
  const other = 'refs/tutti/agents/bc-2/checkpoint'
  const reset = () => `\nreset refs/heads/evil\nfrom ${base}\n\nreset ${other}\nfrom ${base}\n\n`
  const path = Buffer.from('a.txt')
  const oid = 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'

  const cases: [string, () => Record<string, unknown>][] = [
    [
      'mode of a content',
      () => ({
        changes: [{ ...put('a.txt', 'x'), mode: `100644 inline b\ndata 2\nhi\n${reset()}M 100644` }],
      }),
    ],
    ['mode of a folder', () => ({ changes: [{ ...put('a.txt', 'x'), mode: '040000' }] })],
    ['mode of a commit with content', () => ({ changes: [{ ...put('a.txt', 'x'), mode: '160000' }] })],
    ['size', () => ({ changes: [{ ...put('a.txt', 'x'), size: `0\n${reset()}` }] })],
    ['size below nothing', () => ({ changes: [{ ...put('a.txt', ''), size: -1 }] })],
    ['mode of an object', () => ({ changes: [{ path, oid, mode: `100644 ${oid} b${reset()}M 100644` }] })],
    ['object', () => ({ changes: [{ path, mode: '100644', oid: `${oid} b${reset()}M 100644 ${oid}` }] })],
    ['deletion of everything', () => ({ changes: [gone('')] })],
    ['parent', () => ({ parent: `${base}\n${reset()}` })],
    ['parent that is a name', () => ({ parent: 'refs/tutti/source/HEAD' })],
    ['ref', () => ({ ref: `${ref}${reset()}` })],
    ['ref of the source', () => ({ ref: 'refs/tutti/source/heads/trunk' })],
    ['ref that is a branch', () => ({ ref: 'refs/heads/evil' })],
  ]

  const importForged = (forged: object) => {
    const request = { parent: base, changes: [put('ok.txt', 'ok')], message: 'm', atMs: 0, ref, ...forged }
    return importCommit(git, mirror.path, request as unknown as ImportRequest, never)
  }

  test.each(cases)('%s', async (_what, forged) => {
    for (const name of [ref, other]) await mirror.updateRef(name, base, never)
    const before = refs()
    await expect(importForged(forged())).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(refs()).toBe(before)
    expect((await readdir(mirror.path)).filter((name) => name.startsWith('fast_import_crash_'))).toEqual([])
  })

  test('what is a deletion is nothing else', async () => {
    const change = { ...gone('a.txt'), oid, mode: `100644 ${oid} b${reset()}M 100644` }
    const { tree } = await importForged({ changes: [change] })
    expect(tree).toBe(await mirror.treeOf(base, never))
    expect(refs()).not.toContain('evil')
  })
})
