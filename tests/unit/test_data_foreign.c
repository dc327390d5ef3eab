/* Files that are not read are named for what they are, and tables that only begin like them are read. */
#include "zip_support.h"

static void test_named(void **state)
{
    (void)state;
#define START(text) (text), sizeof(text) - 1
    static const struct {
        const char *start;
        size_t size;
        const char *name, *how;
    } files[] = {
        {START("PAR1\x15\4\x15\0"), "is a Parquet file, which shoal does not read; it reads npy, npz",
         "in Python: pandas.read_parquet('"},
        {START("PARE\0"), "an encrypted Parquet file", "text"},
        {START("ARROW1\0\0\xff\xff\xff\xff"), "an Arrow (Feather) file", "pandas.read_feather('"},
        {START("FEA1\0\0"), "a Feather file of version 1", "pandas.read_feather('"},
        {START("ORC\x0a\3\0"), "an ORC file", "pandas.read_orc('"},
        {START("Obj\1\2\x14"), "an Avro file", "fastavro"},
        {START("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0"), "an Excel workbook (.xls)", "pandas.read_excel('"},
        {START("SQLite format 3\0\x10\0"), "an SQLite database", "sqlite3 -csv -header "},
        {START("\1\2\3\4\5\6\7\0DUCK\0"), "a DuckDB database", "duckdb"},
        {START("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\2"), "a pickle of PyTorch",
         "torch.load('"},
        {START("\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94."), "a pickle of Python, which is never loaded", "if you trust it"},
        {START("\x80\x03]q\0."), "a pickle of Python", "pandas.read_pickle('"},
        {START("\x10\0\0\0\0\0\0\0{\"a\":{}}"), "a file of tensors (safetensors)", "shoal predict"},
        {START("GGUF\3\0\0\0"), "a GGUF model", "text"},
        {START("IxF2\4\0\0\0\1\0\0\0"), "an index of FAISS", "reconstruct_n"},
        {START("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "a PNG image", "shoal data patches"},
        {START("\xff\xd8\xff\xe0\0\x10JFIF"), "a JPEG image", "shoal data patches"},
        {START("GIF89a\1\0\1\0"), "a GIF image", "PIL.Image"},
        {START("II*\0\x08\0\0\0"), "a TIFF image", "PIL.Image"},
        {START("RIFF\1\0\0\0WEBPVP8 "), "a WebP image", "PIL.Image"},
        {START("\0\0\0\30ftypheic\0\0\0\0"), "a HEIC image", "text"},
        {START("\0\0\0\30ftypavif\0\0\0\0"), "an AVIF image", "text"},
        {START("\0\0\0\30ftypisom\0\0\0\0"), "an MP4 video", "text"},
        {START("RIFF\1\0\0\0WAVEfmt "), "a WAV sound", "scipy.io.wavfile"},
        {START("7z\xbc\xaf\x27\x1c\0\4"), "a 7z archive", "7z x "},
        {START("\x04\x22\x4d\x18\x64\x40"), "a file compressed by LZ4", "unlz4 "},
        {START("%PDF-1.7\n"), "a PDF document", "text"},
        {START("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "a pointer of Git LFS", "git lfs pull"},
        {START("\n<!DOCTYPE html>\n<html>404</html>"), "a page of HTML", "download it again"},
        {START("<html><body>"), "a page of HTML", "pandas.read_html('"},
        {START("<?xml version=\"1.0\"?><a/>"), "an XML file", "pandas.read_xml('"},
        {START("{\"a\": 1, \"b\": 2}\n{\"a\": 3}\n"), "a JSON file", "lines=True"},
        {START("\xef\xbb\xbf [\n [1, 2],\n [3, 4]]"), "a JSON file", "pandas.read_json('"},
        {START("[1.5, -2]\n[3, 4]\n"), "a JSON file", "pandas.read_json('"},
        {START("%%MatrixMarket matrix array real general\n2 2\n"), "a Matrix Market file", "scipy.io.mmread('"},
        {START("@relation iris\n@data\n"), "an ARFF file", "loadarff('"},
        {START("SIMPLE  =                    T"), "a FITS file", "astropy.io.fits"},
        {START("CDF\1\0\0\0\0"), "a file of NetCDF 3", "nccopy"},
        {START("RDX3\nX\n\0\0\0\3"), "an R data file", "load('"},
    };
#undef START
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = write_file("f.csv", files[i].start, files[i].size); /* the name does not matter */
        refuse(path, SHOAL_INVALID, files[i].name);
        assert_non_null(strstr(shoal_error(), files[i].how));
        refuse_with(path, &(shoal_data_options){.header = SHOAL_HEADER_YES}, SHOAL_INVALID, files[i].name);
    }
    static unsigned char tar[512];
    memcpy(tar, "rows.csv", 8);
    memcpy(tar + 257, "ustar", 5);
    refuse(write_file("f.tar", tar, sizeof tar), SHOAL_INVALID, "a tar archive");
    refuse(append_gzip("f.tar.gz", tar, sizeof tar), SHOAL_INVALID, "a tar archive");
    EXPECT_VALUES(open_with(write_file("f.bin", "PAR1\0\0", 6), &(shoal_data_options){.columns = 3, .type = "u1"}), 2,
                  3, 'P', 'A', 'R', '1', 0, 0);
}

static void test_zips(void **state)
{
    (void)state;
    static const struct {
        const char *member, *name;
    } zips[] = {{"xl/workbook.xml", "an Excel workbook"},
                {"word/document.xml", "a Word document"},
                {"content.xml", "an OpenDocument file"},
                {"archive/data.pkl", "a file of PyTorch (.pt)"},
                {"model.weights.h5", "a Keras model"},
                {"rows.csv", "a zip file without an .npy array in it, which shoal does not read"}};
    for (size_t i = 0; i < sizeof zips / sizeof *zips; i++) {
        static zip_file zip;
        zip = (zip_file){0};
        zip_add(&zip, "[Content_Types].xml", "x", 1, false, 0);
        zip_add(&zip, zips[i].member, "x", 1, false, 0);
        zip_finish(&zip, "");
        refuse(write_file("z.xlsx", zip.bytes, zip.size), SHOAL_INVALID, zips[i].name);
    }
}

static void test_tables_are_read(void **state)
{
    (void)state;
    static const char *const headers[] = {"PAR1,PAR2", "FEA1,FEA2", "ORC,ELF",        "ID3,C45",      "GGUF,b",
                                          "LZIP,a",    "[0],[1]",   "abcdefghDUCK,b", "BM25,score",   "{a},{b}",
                                          "IxF2,y",    "OggS,y",    "MM,II",          "version,https"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s\n1,2\n3,4\n", headers[i]);
        EXPECT_VALUES(open_data(write_text("t.csv", text)), 2, 2, 1, 2, 3, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_named), cmocka_unit_test(test_zips),
                                       cmocka_unit_test(test_tables_are_read)};
    return cmocka_run_group_tests_name("data_foreign", tests, folder_setup, folder_teardown);
}
