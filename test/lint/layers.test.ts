import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import config, { layers } from '../../.dependency-cruiser.mjs'

const root = join(import.meta.dirname, '..', '..')
const depcruise = join(root, 'node_modules', 'dependency-cruiser', 'bin', 'dependency-cruiser.mjs')

/** A source that must be refused, and the rule that has to say so. */
const forbidden: [what: string, path: string, source: string, rule: string][] = [
  [
    'a lower layer importing a higher one',
    'packages/core/src/case-1.ts',
    `import { x } from '@tutti/store'\nexport const y = x`,
    'layer-0: packages/core imports upwards',
  ],
  [
    'a type from a higher layer',
    'packages/git/src/case-2.ts',
    `import type { X } from '@tutti/workflows'\nexport type Y = X`,
    'layer-2: packages/git imports upwards',
  ],
  [
    'run-time code of the same layer',
    'packages/git/src/case-3.ts',
    `import { x } from '@tutti/store'\nexport const y = x`,
    'layer-2: packages/git imports from its own layer',
  ],
  [
    'an adapter importing a sibling',
    'packages/agent-embedded/src/case-4.ts',
    `import { x } from '@tutti/agent-server'\nexport const y = x`,
    'layer-3: packages/agent-embedded imports from its own layer',
  ],
  [
    'a service importing a service',
    'services/api/src/case-5.ts',
    `import { x } from '@tutti/worker'\nexport const y = x`,
    'layer-5: services/api imports from its own layer',
  ],
  [
    "a path into another package's sources",
    'packages/store/src/case-6.ts',
    `import { x } from '../../core/src/index.ts'\nexport const y = x`,
    'packages-by-name',
  ],
  [
    'generated code past its index',
    'packages/protocol/src/case-7.ts',
    `import { x } from '../../proto/gen/m_pb.js'\nexport const y = x`,
    'generated-code-through-its-index',
  ],
  [
    'a Node module in a workflow',
    'packages/workflows/src/case-8.ts',
    `import { readFileSync } from 'node:fs'\nexport const y = readFileSync`,
    'workflows-stay-deterministic',
  ],
  [
    'a Node module in core',
    'packages/core/src/case-9.ts',
    `import { randomUUID } from 'node:crypto'\nexport const y = randomUUID`,
    'workflows-stay-deterministic',
  ],
  [
    '@temporalio/workflow outside workflows',
    'services/api/src/case-10.ts',
    `import { proxy } from '@temporalio/workflow'\nexport const y = proxy`,
    'only-in-packages-workflows: @temporalio/workflow',
  ],
  [
    'the AWS SDK outside its adapter',
    'packages/blob-store/src/case-11.ts',
    `import { S3 } from '@aws-sdk/client-s3'\nexport const y = S3`,
    'only-in-packages-blob-store-s3-packages-testkit: @aws-sdk/[^/]+|@smithy/[^/]+',
  ],
  [
    'simple-git outside git',
    'packages/workspace/src/case-12.ts',
    `import { simpleGit } from 'simple-git'\nexport const y = simpleGit`,
    'only-in-packages-git: simple-git',
  ],
  [
    'an import that nothing answers',
    'packages/git/src/case-13.ts',
    `import { x } from './nothing.ts'\nexport const y = x`,
    'resolvable',
  ],
]

const allowed: [what: string, path: string, source: string][] = [
  ['a lower layer', 'packages/store/src/case-14.ts', `import { x } from '@tutti/core'\nexport const y = x`],
  [
    'a type of the same layer',
    'packages/git/src/case-15.ts',
    `import type { X } from '@tutti/store'\nexport type Y = X`,
  ],
  [
    'the index of the generated code',
    'packages/protocol/src/case-16.ts',
    `import { x } from '@tutti/proto'\nexport const y = x`,
  ],
  [
    '@temporalio/workflow in workflows',
    'packages/workflows/src/case-17.ts',
    `import { proxy } from '@temporalio/workflow'\nexport const y = proxy`,
  ],
]

let folder: string
let violations: string[]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti-layers-'))
  const libraries = ['@temporalio/workflow', '@aws-sdk/client-s3', 'simple-git']
  for (const name of libraries) {
    await put(
      `node_modules/${name}/package.json`,
      JSON.stringify({ name, version: '1.0.0', main: 'index.js' }),
    )
    await put(`node_modules/${name}/index.js`, 'export const x = 1')
  }
  for (const path of Object.keys(layers)) {
    const name = `@tutti/${path.split('/')[1]}`
    const dependencies = Object.fromEntries(libraries.map((library) => [library, '1.0.0']))
    await put(
      `${path}/package.json`,
      JSON.stringify({ name, version: '0.1.0', exports: { '.': './src/index.ts' }, dependencies }),
    )
    await put(`${path}/src/index.ts`, 'export const x = 1\nexport type X = number\n')
    await mkdir(join(folder, 'node_modules/@tutti'), { recursive: true })
    await symlink(join(folder, path), join(folder, 'node_modules', name))
  }
  await put('packages/proto/gen/m_pb.js', 'export const x = 1')
  await put('packages/git/src/cycle-a.ts', `import { b } from './cycle-b.ts'\nexport const a = () => b`)
  await put('packages/git/src/cycle-b.ts', `import { a } from './cycle-a.ts'\nexport const b = () => a`)
  for (const [, path, source] of [...forbidden, ...allowed]) await put(path, source)
  violations = await cruise()
})

afterAll(() => rm(folder, { recursive: true, force: true }))

describe('lint refuses', () => {
  test.each(forbidden)('%s', (_what, path, _source, rule) => {
    expect(violations).toContain(`${rule} in ${path}`)
  })

  test('a cycle', () => {
    expect(violations).toContain('no-cycles in packages/git/src/cycle-a.ts')
  })
})

test.each(allowed)('lint accepts %s', (_what, path) => {
  expect(violations.filter((violation) => violation.endsWith(` in ${path}`))).toEqual([])
})

test('every package has a layer, so that none escapes the rules', async () => {
  const present = await Promise.all(
    ['packages', 'services'].map(async (kind) =>
      (await readdir(join(root, kind))).map((name) => `${kind}/${name}`),
    ),
  )
  const without = present.flat().filter((path) => !(path in layers) && path !== 'packages/testkit')
  expect(without).toEqual([])
  expect(config.forbidden.every(({ severity }) => severity === 'error')).toBe(true)
})

async function put(path: string, source: string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true })
  await writeFile(join(folder, path), source)
}

async function cruise(): Promise<string[]> {
  const args = [
    depcruise,
    '--config',
    join(root, '.dependency-cruiser.mjs'),
    '--output-type',
    'json',
    'packages',
    'services',
  ]
  // It exits with the number of violations; the report is on stdout either way.
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: folder,
    maxBuffer: 1 << 26,
  }).catch((error: { stdout: string }) => error)
  const report: { summary: { violations: { rule: { name: string }; from: string }[] } } = JSON.parse(stdout)
  return report.summary.violations.map(({ rule, from }) => `${rule.name} in ${from}`)
}
