import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { removeOldBundles } from './remove-old-bundles.ts'

test('bundles that nobody has used for a week go; those in use become young, and others in the cache stay', async () => {
  const cache = mkdtempSync(join(tmpdir(), 'tutti-cache-'))
  onTestFinished(() => rmSync(cache, { recursive: true }))
  const old = new Date(Date.now() - 8 * 24 * 60 * 60_000)
  const make = (path: string, when?: Date) => {
    mkdirSync(dirname(join(cache, path)), { recursive: true })
    writeFileSync(join(cache, path), '')
    for (const made of [join(cache, path), dirname(join(cache, path))]) if (when) utimesSync(made, when, when)
  }
  make('workflows-used.js', old)
  make('workflows-old.js', old)
  make('workflows-old.js.half-made', old)
  make('workflows-young.js')
  make('compiled', old)
  make('agent-server/used/agent-server.mjs', old)
  make('agent-server/old/agent-server.mjs', old)
  make('agent-server/young/agent-server.mjs')
  const used = join(cache, 'agent-server/used/agent-server.mjs')
  await removeOldBundles(cache, [join(cache, 'workflows-used.js'), used])
  expect(readdirSync(cache).toSorted()).toEqual([
    'agent-server',
    'compiled',
    'workflows-used.js',
    'workflows-young.js',
  ])
  expect(readdirSync(join(cache, 'agent-server')).toSorted()).toEqual(['used', 'young'])
  expect(statSync(join(cache, 'workflows-used.js')).mtimeMs).toBeGreaterThan(old.getTime())
  expect(statSync(dirname(used)).mtimeMs).toBeGreaterThan(old.getTime())
})
