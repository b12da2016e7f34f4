import { expect, test } from 'vitest'
import { compareReports } from './compare-reports.ts'
import type { GitQuestion, InsideEntry, InsideReport } from './inside-program.ts'

const file = (content: string, mode: '644' | '755' = '644'): InsideEntry => ({ type: 'file', mode, content })
const dir: InsideEntry = { type: 'dir' }

const ids = { a: 'a'.repeat(40), b: 'b'.repeat(40), z: '0'.repeat(40) }
const indexed = (path: string, { flag = 'H', id = ids.a } = {}) => `${flag} 100644 ${id} 0\t${path}`
/** Of `status`: how it stands to the commit and to the index, by default with the modes of both. */
const changed = (xy: string, path: string, { mode = '100644', id = ids.a } = {}) =>
  `1 ${xy} N... 100644 100644 ${mode} ${ids.a} ${id} ${path}`
const renamed = (xy: string, path: string, from: string) =>
  `2 ${xy} N... 100644 100644 100644 ${ids.a} ${ids.a} R100 ${path}\0${from}`
const unmerged = (path: string) => `u UU N... 100644 100644 100644 100644 ${ids.a} ${ids.a} ${ids.a} ${path}`
const entries = (...texts: readonly string[]) => texts.map((text) => `${text}\0`).join('')
const lines = (...texts: readonly string[]) => texts.map((text) => `${text}\n`).join('')

interface Part {
  readonly tree?: Readonly<Record<string, InsideEntry>>
  readonly git?: Partial<InsideReport['git']>
  readonly shut?: readonly string[]
}
const report = ({ tree = {}, git, shut = [] }: Part): InsideReport => ({
  tree,
  shut,
  git: { index: '', status: '', head: '', refs: '', stash: '', progress: '{}', ...git },
  effective: [],
})

interface Circumstances {
  readonly missing?: readonly string[]
  readonly isCut?: boolean
}
const compare = (before: Part, after: Part, { missing = [], isCut = false }: Circumstances = {}) =>
  compareReports(report(before), report(after), {
    missing: missing.map((path) => ({ path, reason: 'unreadable' as const })),
    isCut,
  })
/** What each line is about: a path, or a question to git. */
const about = (wrong: readonly string[]) => wrong.map((line) => line.replace(/: .*/s, ''))

const whole: Part = {
  tree: {
    'a \xff': file('a'),
    d: dir,
    'd/x': file('x', '755'),
    'd/empty': dir,
    link: { type: 'symlink', content: 'd/x' },
  },
  git: {
    index: entries(indexed('d/x'), indexed('e')),
    status: entries(changed('MM', 'd/x'), renamed('R.', 'new', 'old'), unmerged('u'), '? a'),
    head: 'ref: refs/heads/main\n',
    refs: lines(`refs/heads/main ${ids.a} `, `refs/heads/other ${ids.b} `),
    stash: lines(`${ids.a} On main: one`, `${ids.b} On main: two`),
    progress: JSON.stringify({ '.git/MERGE_HEAD': ids.b }),
  },
}

test('the same is the same', () => {
  expect(compare(whole, whole)).toEqual([])
})

test.for<[string, string, InsideEntry | undefined]>([
  ['a file that is gone', 'd/x', undefined],
  ['one that is there', 'more', file('more')],
  ['another content', 'a \xff', file('b')],
  ['another mode', 'd/x', file('x', '644')],
  ['another type', 'link', file('d/x')],
  ['another target', 'link', { type: 'symlink', content: 'd/y' }],
  ['an empty folder that is gone', 'd/empty', undefined],
  ['a folder that is a file', 'd/empty', file('')],
])('the tree: %s', ([, key, entry]) => {
  const { [key]: _before, ...others } = whole.tree!
  expect(about(compare(whole, { ...whole, tree: { ...others, ...(entry && { [key]: entry }) } }))).toEqual([
    JSON.stringify(key),
  ])
})

test.for<[GitQuestion, string]>([
  ['index', entries(indexed('d/x', { id: ids.b }), indexed('e'))],
  ['index', entries(indexed('d/x', { flag: 'S' }), indexed('e'))],
  ['index', entries(indexed('d/x'))],
  ['index', 'failed: 128'],
  ['status', entries(changed('AM', 'd/x'), renamed('R.', 'new', 'old'), unmerged('u'), '? a')],
  ['status', entries(changed('MM', 'd/x'), renamed('R.', 'new', 'older'), unmerged('u'), '? a')],
  ['status', entries(changed('MM', 'd/x'), renamed('R.', 'new', 'old'), '? a')],
  ['status', entries(changed('MM', 'd/x'), renamed('R.', 'new', 'old'), unmerged('u'))],
  ['status', entries(changed('MM', 'd/x'), renamed('R.', 'new', 'old'), unmerged('u'), '? a', '? b')],
  ['status', 'failed: 128'],
  ['head', `${ids.a}\n`],
  ['head', ''],
  ['refs', lines(`refs/heads/main ${ids.a} `, `refs/heads/other ${ids.a} `)],
  ['refs', lines(`refs/heads/main ${ids.a} `)],
  ['stash', lines(`${ids.a} On main: one`)],
  ['stash', lines(`${ids.b} On main: two`, `${ids.a} On main: one`)],
  ['stash', lines(`${ids.a} On main: one`, `${ids.b} On main: two`, `${ids.b} On main: two`)],
  ['progress', '{}'],
])('git: another %s', ([question, answer]) => {
  expect(about(compare(whole, { ...whole, git: { ...whole.git, [question]: answer } }))).toEqual([question])
})

test('git: a status that fails is none that finds nothing, in either direction', () => {
  const [fails, works] = [{ git: { status: 'failed: 128' } }, {}]
  expect(about(compare(works, fails))).toEqual(['status'])
  expect(about(compare(fails, works))).toEqual(['status'])
  expect(compare(fails, fails)).toEqual([])
})

/** What may differ, and what looks like it and may not: before, after, and what is said about the latter. */
interface Exemption {
  readonly before: Part
  readonly after: Part
  readonly objects?: readonly string[]
  readonly given?: Circumstances
}

test.for<[string, Exemption]>([
  [
    'what is named as missing',
    {
      before: { tree: { a: file('a'), ab: file('ab') } },
      after: {},
      given: { missing: ['a'] },
      objects: ['"ab"'],
    },
  ],
  [
    'what is in a folder that is named',
    {
      before: { tree: { 'd/x/y': file('y'), 'dx/y': file('y'), 'e/d/x': file('x') } },
      after: {},
      given: { missing: ['d/'] },
      objects: ['"dx/y"', '"e/d/x"'],
    },
  ],
  [
    'a folder that was there for what is missing',
    {
      before: { tree: { d: dir, 'd/e': dir, other: dir } },
      after: {},
      given: { missing: ['d/e/x'] },
      objects: ['"other"'],
    },
  ],
  [
    'such a folder, but not what took its place, and no file that stood there',
    {
      before: { tree: { d: dir, e: file('e') } },
      after: { tree: { d: file('d') } },
      given: { missing: ['d/x', 'e/x'] },
      objects: ['"d"', '"e"'],
    },
  ],
  [
    'the tree, when not all that is missing could be named, and nothing of git',
    {
      before: { tree: { a: file('a') }, git: { head: 'one' } },
      after: {},
      given: { isCut: true },
      objects: ['head'],
    },
  ],
  [
    'all of git when its folder is named, and nothing of the tree',
    {
      before: { ...whole, tree: { a: file('a') } },
      after: {},
      given: { missing: ['.git'] },
      objects: ['"a"'],
    },
  ],
  [
    'the index and the status when the index is named',
    {
      before: whole,
      after: { tree: whole.tree! },
      given: { missing: ['.git/index'] },
      objects: ['head', 'refs', 'stash', 'progress'],
    },
  ],
  [
    'a status that failed before, when something is missing',
    {
      before: { git: { status: 'failed: null', index: 'failed: null' } },
      after: {},
      given: { missing: ['fifo'] },
      objects: ['index'],
    },
  ],
  [
    'not one that fails afterwards',
    {
      before: {},
      after: { git: { status: 'failed: null' } },
      given: { missing: ['fifo'] },
      objects: ['status'],
    },
  ],
  [
    'what status says of a path that is missing, of all kinds',
    {
      before: {
        git: {
          status: entries(
            changed('M.', 'a/x'),
            renamed('R.', 'a/y', 'b'),
            unmerged('a/u'),
            '? a/z',
            '? a/q/',
          ),
        },
      },
      after: {},
      given: { missing: ['a'] },
    },
  ],
  [
    'of a rename also the path that it had',
    {
      before: { git: { status: entries(renamed('R.', 'b', 'a')) } },
      after: {},
      given: { missing: ['a'] },
    },
  ],
  [
    'nothing that status says of other paths',
    {
      before: { git: { status: entries(changed('M.', 'b a'), renamed('R.', 'c', 'd a'), '? ab') } },
      after: {},
      given: { missing: ['a'] },
      objects: ['status'],
    },
  ],
  [
    'what status says in a repository that is none any more',
    {
      before: { tree: { 'n/.git': { type: 'git' } }, git: { status: entries('? n/', '? n/x') } },
      after: { tree: { 'n/.git': { type: 'dir' } } },
      objects: ['"n/.git"'],
    },
  ],
  [
    'not in one that is one still',
    {
      before: { tree: { 'n/.git': { type: 'git' } }, git: { status: entries('? n/') } },
      after: { tree: { 'n/.git': { type: 'git' } } },
      objects: ['status'],
    },
  ],
  [
    'what status says in a folder that was shut',
    {
      before: { shut: ['s'], git: { status: entries('? s/x', changed('.D', 's/y')) } },
      after: { shut: ['s'] },
    },
  ],
  [
    'not in one beside it, nor in one that is shut only now',
    {
      before: { shut: ['s'], git: { status: entries('? sx') } },
      after: { shut: ['sx'] },
      objects: ['status'],
    },
  ],
  [
    'a file that status takes for changed, with the mode that the index has',
    {
      before: { git: { status: entries(changed('.M', 'a'), changed('MM', 'b')) } },
      after: { git: { status: entries(changed('M.', 'b')) } },
    },
  ],
  [
    'not one whose mode is another',
    {
      before: { git: { status: entries(changed('.M', 'a', { mode: '100755' })) } },
      after: {},
      objects: ['status'],
    },
  ],
  [
    'not one that is gone, or has changed in the index',
    {
      before: { git: { status: entries(changed('.D', 'a'), changed('M.', 'b')) } },
      after: {},
      objects: ['status'],
    },
  ],
  [
    'the flag in the index of what is missing, or in a folder that was shut',
    {
      before: { shut: ['s'], git: { index: entries(indexed('a/x', { flag: 'S' }), indexed('s/y')) } },
      after: { git: { index: entries(indexed('a/x'), indexed('s/y', { flag: 'S' })) } },
      given: { missing: ['a'] },
    },
  ],
  [
    'not the content of its entry, nor that it is there',
    {
      before: { git: { index: entries(indexed('a')) } },
      after: { git: { index: entries(indexed('a', { id: ids.b })) } },
      given: { missing: ['a'] },
      objects: ['index'],
    },
  ],
  [
    'nor the flag of another',
    {
      before: { git: { index: entries(indexed('ab', { flag: 'S' })) } },
      after: { git: { index: entries(indexed('ab')) } },
      given: { missing: ['a'] },
      objects: ['index'],
    },
  ],
])('exempt: %s', ([, { before, after, given, objects = [] }]) => {
  expect(about(compare(before, after, given))).toEqual(objects)
})
