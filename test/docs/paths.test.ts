import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { listSources, root } from '../lint/sources.ts'
import { findMentions } from './mentions.ts'
import { type CommandTree, findCommandFault } from './tutti-command.ts'

const TOP = ['README.md', 'ARCHITECTURE.md', 'AGENTS.md', 'CONTRIBUTING.md', 'PROTOCOL.md', 'SECURITY.md']
const documents = [...TOP, ...globSync('docs/**/*.md', { cwd: root })].filter((path) =>
  existsSync(join(root, path)),
)
const roots = new Set(readdirSync(root))
const manifest: { scripts: Record<string, string> } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
)
const PNPM_OWN = ['install', 'i', 'add', 'remove', 'update', 'exec', 'dlx', 'why', 'list']
const NPM_OWN = ['install', 'ci', 'ping', 'config', 'view', 'exec']

describe('the reader of documents', () => {
  const text =
    'See [the tree](docs/api.md#tree), `packages/core/` and `agent/{bcId}`.\n\n```sh\n$ npm test && pnpm lint # both\ntutti run "x" \\\n  --repo .\n```\n\nThen `tutti doctor`; field `tutti = 1000`.'

  test('finds links, paths and commands', () => {
    expect(findMentions(text)).toEqual({
      links: ['docs/api.md'],
      paths: ['packages/core/'],
      commands: ['npm test', 'pnpm lint', 'tutti run "x" --repo .', 'tutti doctor'],
    })
  })

  const leaf = (name: string, options: string[], takes = 0): CommandTree => ({
    name: () => name,
    aliases: () => [],
    commands: [],
    options: options.map((long) => ({ long })),
    registeredArguments: Array.from({ length: takes }),
  })
  const agent = { ...leaf('agent', []), commands: [leaf('list', []), leaf('send', ['--interrupt'], 2)] }
  const program = { ...leaf('tutti', ['--data-dir']), commands: [agent, leaf('run', ['--repo'], 1)] }

  test.each([
    ['tutti run "do it" --repo . --data-dir x', undefined],
    ['npx tutti agent send ID --interrupt', undefined],
    ['tutti agent list|send ID', undefined],
    ['tutti agents', 'tutti has no command agents'],
    ['tutti agent list|sand ID', 'agent has no command list|sand'],
    ['tutti run "x" --repos .', 'run has no option --repos'],
  ])('%s: %s', (line, fault) => {
    expect(findCommandFault(program, line)).toBe(fault)
  })
})

describe.each(documents)('%s', (document) => {
  const mentions = findMentions(readFileSync(join(root, document), 'utf8'))

  test('names only files that exist', async () => {
    const known = new Set((await listSources()).map((path) => path.split('/').at(-1)))
    const missingLinks = mentions.links.filter((target) => !existsSync(join(root, dirname(document), target)))
    const missingPaths = mentions.paths.filter((path) => {
      const [first = '', ...rest] = path.split('/')
      if (rest.length === 0)
        return !existsSync(join(root, path)) && !known.has(path) && /\.(?:md|ts|mjs)$/.test(path)
      // Anything else with a slash in it may be a media type, a branch or a workflow id.
      if (!roots.has(first)) return false
      return path.includes('*') ? globSync(path, { cwd: root }).length === 0 : !existsSync(join(root, path))
    })
    expect([...missingLinks, ...missingPaths]).toEqual([])
  })

  test('names only package scripts that exist', () => {
    expect(mentions.commands.filter((command) => !isKnownScript(command))).toEqual([])
  })
})

const programPath = join(root, 'packages', 'cli', 'src', 'program.ts')
// The check begins to exist together with the command tree.
if (existsSync(programPath)) {
  describe('tutti commands', async () => {
    const { buildProgram }: { buildProgram: (deps: object) => CommandTree } = await import(
      pathToFileURL(programPath).href
    )
    const program = buildProgram({ stdout: process.stdout, stderr: process.stderr })
    test.each(documents)('%s names only commands and options that exist', (document) => {
      const { commands } = findMentions(readFileSync(join(root, document), 'utf8'))
      const faults = commands
        .filter((command) => /^(?:npx )?tutti/.test(command))
        .map((command) => ({ command, fault: findCommandFault(program, command) }))
      expect(faults.filter(({ fault }) => fault !== undefined)).toEqual([])
    })
  })
}

function isKnownScript(command: string): boolean {
  const [tool, ...words] = command.replace(/^npx /, '').split(/\s+/)
  const named = words.filter((word) => !word.startsWith('-'))
  const script = named[0] === 'run' ? named[1] : named[0]
  if (tool === 'tutti' || script === undefined) return true
  if (script in manifest.scripts) return true
  return named[0] !== 'run' && (tool === 'pnpm' ? PNPM_OWN : NPM_OWN).includes(script)
}
