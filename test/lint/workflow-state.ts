/** One place in a workflow source that a replay cannot repeat, or that two runs in one process would share. */
export type Finding = { line: number; why: string }

const MUTABLE = /^(?:export\s+)?(?:let|var)\s/
const COLLECTION =
  /^(?:export\s+)?const\s+\w+(?:\s*:[^=]+)?\s*=\s*new\s+(?:Map|Set|WeakMap|WeakSet|Array)\b(?!.*\bReadonly(?:Map|Set)\b)/
const CLOCKS =
  /\b(?:Date\.now|new Date|Date\(|Temporal\.\w+|performance\.now|Math\.random|crypto\.\w+|setInterval|setImmediate|process\.\w+)/
const PATCHED = /\bglobalThis\.\w+\s*=(?!=)/

/**
 * Reads one workflow file line by line: a workflow has no module-level mutable state and uses no global clock, chance or
 * process. Temporal replaces some of these in its sandbox, but then a reader cannot see which of them are safe; time
 * comes from the input and from `sleep`. Top level is told by indentation, which the formatter guarantees.
 */
export function findUnsafeWorkflowCode(source: string): Finding[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, ' '))
  return code.split('\n').flatMap((text, index) => {
    const bare = text.replace(/\/\/.*$/, '').replaceAll(/'(?:[^'\\]|\\.)*'/g, "''")
    const found: Finding[] = []
    const add = (why: string) => found.push({ line: index + 1, why })
    if (MUTABLE.test(bare) || COLLECTION.test(bare)) add('mutable state at module level')
    if (CLOCKS.test(bare)) add('a global clock, chance or process')
    if (PATCHED.test(bare)) add('a changed global')
    return found
  })
}
