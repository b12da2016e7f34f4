/**
 * Whether git takes no link at this path into an index (CVE-2018-11235): a part of it is `.gitmodules` in whatever case, or the last one, also
 * behind a backslash, is what Windows takes for it: with trailing dots and blanks, with a stream, or one of its short names.
 */
export const isModulesPath = (path: Uint8Array): boolean => {
  const text = Buffer.from(path).toString('latin1')
  return modulesPart.test(text) || windowsEnd.test(text)
}

const modulesPart = /(?:^|\/)\.gitmodules(?:\/|$)/i
const windowsEnd =
  /(?:^|[/\\])(?:\.gitmodules|gitmod~[1-4]|(?=.{8}(?:$|[.: ]))g?i?7?e?b?a?~[1-9]\d*)[. ]*(?::|$)/is
