import { execFile } from 'node:child_process'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { expect, it } from 'vitest'

import * as index from './index.ts'

const root = join(import.meta.dirname, '../../..')
const committed = join(root, 'packages/proto/gen')

async function filesIn(directory: string): Promise<Map<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const files = await Promise.all(
    paths
      .toSorted()
      .map(async (path) => [path.slice(directory.length + 1), await readFile(path, 'utf8')] as const),
  )
  return new Map(files)
}

it('the committed code is what the sources generate', async () => {
  const fresh = await mkdtemp(join(tmpdir(), 'tutti-proto-'))
  try {
    await promisify(execFile)(join(root, 'node_modules/.bin/buf'), ['generate', '--output', fresh], {
      cwd: root,
    })
    const [want, have] = [await filesIn(join(fresh, 'packages/proto/gen')), await filesIn(committed)]
    expect([...have.keys()]).toEqual([...want.keys()])
    for (const [path, text] of want)
      expect(have.get(path) === text, `${path} is stale: run pnpm generate`).toBe(true)
  } finally {
    await rm(fresh, { recursive: true })
  }
})

it('the sources obey the lint rules of buf.yaml', async () => {
  const { stdout } = await promisify(execFile)(join(root, 'node_modules/.bin/buf'), ['lint'], { cwd: root })
  expect(stdout).toBe('')
})

it('the index names every generated message, enum and service', async () => {
  const texts = [...(await filesIn(committed))]
    .filter(([path]) => path.endsWith('.js'))
    .map(([, text]) => text)
  const exported = texts.flatMap((text) =>
    [...text.matchAll(/^export const (\w+)/gm)].map((match) => match[1]!),
  )
  expect(Object.keys(index).toSorted()).toEqual(
    exported.filter((name) => !name.startsWith('file_')).toSorted(),
  )
})
