import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMirrors } from '@tutti/git'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeDemoRepository } from './make-repository.ts'
import { removeOldRepositories } from './remove-old-repositories.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tutti-old-demos-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

test('the newest three stay, older ones go with their mirrors, and other folders are left alone', async () => {
  const { signal } = new AbortController()
  const repositories = join(root, 'repositories')
  const mirrors = createMirrors({ root: join(root, 'mirrors') })
  const paths: string[] = []
  for (let made = 1; made <= 5; made += 1) {
    const repository = join(repositories, `little-shop-${made}`)
    mkdirSync(repository, { recursive: true })
    await makeDemoRepository(repository, signal)
    utimesSync(repository, made, made)
    // One never got a mirror.
    if (made !== 2) paths.push((await mirrors.open(repository, signal)).path)
  }
  mkdirSync(join(repositories, 'mine'))

  await removeOldRepositories(repositories, mirrors, signal)

  expect(readdirSync(repositories).toSorted()).toEqual([
    'little-shop-3',
    'little-shop-4',
    'little-shop-5',
    'mine',
  ])
  const left = readdirSync(join(root, 'mirrors')).filter((name) => !name.startsWith('.'))
  const expected = paths
    .slice(1)
    .flatMap((path) => [path, path.replace(/git$/, 'source.git'), `${path}.lock`])
  expect(left.map((name) => join(root, 'mirrors', name)).toSorted()).toEqual(expected.toSorted())
})
