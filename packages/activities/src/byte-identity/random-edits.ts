import type { InsideEdit, InsideReport } from './inside-program.ts'
import { nestedShapes, repositoryShapes } from './repository-shapes.ts'
import type { SeededRandom } from './seeded-random.ts'
import { treeShapes } from './tree-shapes.ts'

/** An edit, and what it is called in a failure. */
export interface NamedEdit {
  readonly name: string
  /** Its name among the shapes, wherever it is; none for a change of one path. */
  readonly shape?: string
  readonly edit: InsideEdit
}

/** So few that shapes meet, and one is the workspace itself. */
const folders = ['.', 'one', 'one/two', 'three \xff']
const trees = Object.entries({ ...treeShapes, ...nestedShapes })
const repository = Object.entries(repositoryShapes)

/** Some edits of a workspace as it is: shapes in its folders, changes of what is there, and what agents do with git. */
export function randomEdits(random: SeededRandom, { tree }: Pick<InsideReport, 'tree'>): NamedEdit[] {
  const there = Object.keys(tree)
  const anyPath = () => (there.length > 0 && random.chance(0.7) ? random.pick(there) : random.pick(made))
  const count = 2 + random.below(6)
  return Array.from({ length: count }, () => {
    const kind = random.below(10)
    if (kind < 4) {
      const [name, line] = random.pick(trees)
      // Paths of shell edits are text.
      const folder = random.pick(folders.slice(0, 3))
      return { name: `${name} in ${folder}`, shape: name, edit: { kind: 'shell', line, folder } }
    }
    if (kind < 8) {
      const [name, line] = random.pick(repository)
      return { name, shape: name, edit: { kind: 'shell', line, folder: '.' } }
    }
    const edit = pathEdit(random, anyPath)
    return { name: JSON.stringify(edit), edit }
  })
}

const made = folders.flatMap((folder) =>
  ['a', 'b/c', 'e\xcc\x81', 'flip', '\xff\xfe', 'data'].map((name) =>
    folder === '.' ? name : `${folder}/${name}`,
  ),
)

function pathEdit(random: SeededRandom, anyPath: () => string): InsideEdit {
  const path = anyPath()
  const content = String.fromCharCode(...Array.from({ length: random.below(60) }, () => random.below(256)))
  switch (random.below(7)) {
    case 0:
      return { kind: 'remove', path }
    case 1:
      return { kind: 'chmod', path }
    case 2:
      return { kind: 'move', path, to: anyPath() }
    case 3:
      return { kind: 'folder', path }
    case 4:
      return { kind: 'link', path, content: `t${content.replaceAll('\0', '')}` }
    default:
      return { kind: 'write', path, content }
  }
}
